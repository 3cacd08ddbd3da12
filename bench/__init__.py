"""Measurements that anyone can repeat: retrieval quality, latency and load, each one command, peers in the same run."""
