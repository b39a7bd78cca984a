"""Runs of networks: configurations, image data, and runs that resume after an interrupt."""
