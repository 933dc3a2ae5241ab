#include "comm/transport/gloo/gloo_mesh.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <regex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/task_queue.h"

namespace ringlet::comm {

namespace tcp = gloo::transport::tcp;

namespace {

/// What makes Gloo wait for `seconds` until a pair is connected.
std::chrono::milliseconds connect_timeout(double seconds) {
  constexpr double kGloosFactor = 5, kLongest = 3600;
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1e3 * std::min(seconds, kLongest) / kGloosFactor) + 1);
}

/// An address of the loopback that hardly anybody else asks for: all of 127.0.0.0/8 are this
/// machine.
std::string address_of_our_own() {
  std::random_device random;
  std::uniform_int_distribution<int> part(1, 254);
  return fmt::format("127.{}.{}.{}", part(random), part(random), part(random));
}

/// The device on whose addresses the pairs listen for this process itself. No data goes there.
std::shared_ptr<gloo::transport::Device> make_device() {
  for (const std::string& address :
       {address_of_our_own(), std::string("127.0.0.1"), std::string("::1")}) {
    try {
      return tcp::CreateDevice(address.c_str());
    } catch (const std::system_error&) {  // no thread, say, wherever it listens
      throw;
    } catch (const std::exception&) {  // this machine does not have it
    }
  }
  throw CommError("this machine has no loopback");
}

std::string bytes_of_end(int descriptor, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (name(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return {reinterpret_cast<const char*>(&address), length};
}

/// The descriptor in this process of the other end of `ours`; -1 where that is not in this process.
/// Both addresses are compared: the kernel gives one port to connections that lead to different
/// ends.
int other_end_of(int ours) {
  constexpr int kMost = 1 << 20;
  const std::string own = bytes_of_end(ours, ::getsockname);
  const std::string peer = bytes_of_end(ours, ::getpeername);
  for (int other = 0; other < kMost; ++other) {
    if (bytes_of_end(other, ::getpeername) == own && bytes_of_end(other, ::getsockname) == peer) {
      return other;
    }
  }
  return -1;
}

/// Of two pairs, that one listens which has the smaller address. There is none greater than this.
std::vector<char> greatest_address(const tcp::Address& like) {
  sockaddr_storage address = like.getSockaddr();
  constexpr int kOnes = 0xFF;
  if (address.ss_family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    std::memset(&four.sin_addr, kOnes, sizeof four.sin_addr);
  } else {
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    std::memset(&six.sin6_addr, kOnes, sizeof six.sin6_addr);
  }
  return tcp::Address(address, like.getSeq()).bytes();
}

/// A connection to where a pair listens; not open where that has failed.
Descriptor connect_to_pair(const tcp::Address& address) {
  const sockaddr_storage& where = address.getSockaddr();
  Descriptor ours(::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socklen_t length = where.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::connect(ours.get(), reinterpret_cast<const sockaddr*>(&where), length) != 0) return {};
  // Where all pairs of a device share a listener, as in later versions, it asks for which this is.
  const tcp::sequence_number_t number = address.getSeq();
  if (number != tcp::Address::kSequenceNumberUnset) {
    (void)::send(ours.get(), &number, sizeof number, MSG_NOSIGNAL);
  }
  return ours;
}

}  // namespace

/// On the list of what Gloo's thread waits for.
class GlooMesh::RestHandler final : public tcp::Handler {
 public:
  explicit RestHandler(tcp::Device& device) : device_(device) {
    device_.registerDescriptor(rest_.descriptor(), EPOLLIN, this);
  }
  ~RestHandler() override { device_.unregisterDescriptor(rest_.descriptor(), this); }
  RestHandler(const RestHandler&) = delete;
  RestHandler& operator=(const RestHandler&) = delete;
  void handleEvents(int /*events*/) override { rest_.rest(); }
  LoopRest* rest() { return &rest_; }

 private:
  tcp::Device& device_;
  LoopRest rest_;
};

GlooMesh::GlooMesh(const ProcessPosition& position, std::vector<Descriptor> sockets,
                   double timeout_seconds)
    : gloo::Context(position.process, position.processes) {
  device_ = make_device();
  rest_ = std::make_unique<RestHandler>(dynamic_cast<tcp::Device&>(*device_));
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(connect_timeout(timeout_seconds));
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) adopt(peer, sockets[static_cast<std::size_t>(peer)]);
  }
}

GlooMesh::~GlooMesh() = default;

LoopRest* GlooMesh::loop_to_rest() {
  return TaskQueue::threads() > spare_processors_ ? rest_->rest() : nullptr;
}

void GlooMesh::adopt(int peer, const Descriptor& socket) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (try_to_adopt(peer, socket)) return;
  }
  throw CommError(
      fmt::format("the connection to process {} cannot be handed to Gloo on the loopback", peer));
}

/// False where another program has connected to the pair first, or the loopback lets nobody.
bool GlooMesh::try_to_adopt(int peer, const Descriptor& socket) {
  auto& pair = transportContext_->createPair(peer);
  const tcp::Address address(pair->address().bytes());
  const Descriptor ours = connect_to_pair(address);
  if (!ours.open()) return false;
  pair->connect(greatest_address(address));  // returns when the pair has accepted somebody
  const int theirs = other_end_of(ours.get());
  auto* handler = dynamic_cast<tcp::Handler*>(pair.get());
  auto* device = dynamic_cast<tcp::Device*>(device_.get());
  if (theirs < 0 || handler == nullptr || device == nullptr) return false;
  if (::dup3(socket.get(), theirs, O_CLOEXEC) < 0) return false;
  device->registerDescriptor(theirs, EPOLLIN, handler);
  return true;
}

std::string words_of_gloo(const std::exception& error) {
  static const std::regex kSourceLine(R"(\[(enforce fail at )?\.?/?[^\] ]*\.(cc|h):\d+\] ?)");
  static const std::regex kAddress(R"( ?\[[0-9a-f.:]+\](:\d+)?(\$-?\d+)?)");
  return std::regex_replace(std::regex_replace(error.what(), kSourceLine, ""), kAddress, "");
}

}  // namespace ringlet::comm
