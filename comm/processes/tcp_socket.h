// The calls about TCP sockets that a MessageSocket needs. All sockets are closed by exec().
#pragma once

#include <chrono>
#include <string>

#include "comm/processes/tcp_address.h"

namespace ringlet::comm {

/// As MessageSocket::listen(); a descriptor that does not block, or -1 and why in `failure`.
int listen_tcp(const TcpAddress& address, std::string& failure);
/// As MessageSocket::connect(); a descriptor, or -1 and why in `failure`.
int connect_tcp(const TcpAddress& address, std::chrono::milliseconds patience,
                std::string& failure);
/// Lets the kernel send each message at once: it would wait for more to come.
void send_at_once(int descriptor);
/// The socket's own address, in numbers.
TcpAddress own_address_of(int descriptor);

}  // namespace ringlet::comm
