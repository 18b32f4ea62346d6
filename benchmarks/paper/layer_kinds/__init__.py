"""What `benchmarks.paper.table1` counts, measures and fits of each kind of layer in Table 1 of the paper."""
