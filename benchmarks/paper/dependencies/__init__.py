"""What `benchmarks.paper.long_dependencies` trains: an encoder of each kind, on tasks whose answers stand far away."""
