"""What `benchmarks.long_dependencies` trains: two tasks whose answers stand far away, and an encoder of each kind."""
