"""The shortest of twenty round trips of a datagram from m1 to m0, in milliseconds. To be run on both machines that
scripts/machines plays.
"""

import os
import socket
import time

PORT = 29600
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if os.environ["MACHINE"] == "0":
    datagrams.bind((os.environ["MASTER_ADDR"], PORT))
    datagrams.settimeout(2)
    try:
        while True:
            datagram, sender = datagrams.recvfrom(8)
            datagrams.sendto(datagram, sender)
    except TimeoutError:  # the other one has ended
        pass
else:
    datagrams.settimeout(0.2)
    shortest = float("inf")
    for number in range(20):
        begin = time.monotonic()
        datagrams.sendto(bytes([number]), (os.environ["MASTER_ADDR"], PORT))
        try:
            while datagrams.recv(8) != bytes([number]):
                pass
        except TimeoutError:  # m0 does not listen yet
            continue
        shortest = min(shortest, time.monotonic() - begin)
    print(f"{1000 * shortest:.2f}")
