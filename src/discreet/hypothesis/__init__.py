"""Distributions over a declared domain that agree with released answers."""
