"""Privacy losses beside the peers: speed, accuracy, soundness."""
