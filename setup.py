"""Adds the tour to the packages: it lives in examples/tour, and `discreet tour` of an installed package imports it."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), "discreet_tour"],
    package_dir={"": "src", "discreet_tour": "examples/tour"},
)
