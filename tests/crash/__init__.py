"""Kills, power cuts, disk errors and damaged files, against the ledger as a black box.

layer.c, layer.py   a preloaded library that counts, kills, fails, forgets, records or slows file-system calls
operations.py       what is done to a ledger while that happens, and how it is done again afterwards
server.py           forks one process for each run, from one that has imported everything
disk.py             which files a power cut leaves, from a recording
judge.py            what must hold afterwards
harness.py          the runs: template, copy, run, judge, count
"""
