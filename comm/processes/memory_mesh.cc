#include "comm/processes/memory_mesh.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "comm/core/errors.h"
#include "comm/processes/rendezvous.h"

namespace ringlet::comm {

namespace {

static_assert(std::is_trivially_copyable_v<MemoryNote>);
using Control = std::array<std::byte, CMSG_SPACE(sizeof(int))>;

/// sendmsg(2), with `descriptor` unless it is negative. False where it fails: errno says why.
bool send_note(int socket, MemoryNote note, int descriptor) {
  iovec part{&note, sizeof note};
  alignas(cmsghdr) Control control{};
  msghdr all{};
  all.msg_iov = &part;
  all.msg_iovlen = 1;
  if (descriptor >= 0) {
    all.msg_control = control.data();
    all.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&all);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

std::optional<HandedMemory> receive_note(int socket) {
  HandedMemory handed;
  iovec part{&handed.note, sizeof handed.note};
  alignas(cmsghdr) Control control{};
  msghdr all{};
  all.msg_iov = &part;
  all.msg_iovlen = 1;
  all.msg_control = control.data();
  all.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &all, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&all) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    handed.file = Descriptor(number);
  }
  if (got != static_cast<ssize_t>(sizeof handed.note)) return std::nullopt;
  return handed;
}

/// No run has had it before: process numbers repeat, also between PID namespaces.
std::string new_name() {
  std::random_device random;
  return fmt::format("ringlet/{}/memory/{:08x}{:08x}", ::getuid(), random(), random());
}

std::string name_key(int process) { return fmt::format("memory of process {}", process); }
std::string ready_key(int process) { return fmt::format("connections of process {}", process); }

/// The kernel lets no more descriptors of a user be on their way, of all processes together, than
/// the sender may have open (unix(7), ETOOMANYREFS). Each rank hands its memory to all processes
/// before anybody takes it. So this process's limit is raised to that, as far as it may be.
void allow_descriptors(std::size_t processes, int replicas) {
  constexpr rlim_t kMemories = 8;  // of a rank, at once
  constexpr rlim_t kOthers = 1024;
  const rlim_t wanted = kOthers + processes * processes * static_cast<rlim_t>(replicas) * kMemories;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
  files.rlim_cur = std::min(wanted, files.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // without it, fail_to_hand_over() says what to do
}

[[noreturn]] void fail_to_hand_over(int process) {
  if (errno == ETOOMANYREFS) {
    throw CommError(fmt::format(
        "memory cannot be handed to process {}: as many files are on their way between your "
        "processes as one may have open; allow more (ulimit -n), or use --transport gloo",
        process));
  }
  const std::string why = std::generic_category().message(errno);
  throw CommError(
      fmt::format("memory cannot be handed to process {}: {}; use --transport gloo, or --replicas "
                  "in one process",
                  process, why));
}

}  // namespace

/// Each connects to those before it, says who it is, and announces it. Then all that it accepts is
/// there already.
MemoryMesh::MemoryMesh(Rendezvous& rendezvous, const std::vector<int>& here, int replicas,
                       double timeout_seconds)
    : own_(rendezvous.position().process),
      links_(static_cast<std::size_t>(rendezvous.position().processes)) {
  std::tie(links_[static_cast<std::size_t>(own_)], to_itself_) = MessageSocket::make_pair();
  if (here.size() == 1) return;
  allow_descriptors(here.size(), replicas);
  const std::string name = new_name();
  const MessageSocket listener = MessageSocket::listen(name);
  rendezvous.set(name_key(own_), name);
  for (const int other : here) {
    if (other < own_) connect(other, rendezvous.get(name_key(other), timeout_seconds));
  }
  rendezvous.set(ready_key(own_), "");
  for (const int other : here) {
    if (other > own_) rendezvous.get(ready_key(other), timeout_seconds);
  }
  accept(listener);
}

void MemoryMesh::connect(int process, const std::string& name) {
  MessageSocket link = MessageSocket::connect(name);
  if (!link.open()) return;  // it has died
  if (!send_note(link.descriptor(), {.rank = own_}, -1)) fail_to_hand_over(process);
  links_[static_cast<std::size_t>(process)] = std::move(link);
}

void MemoryMesh::accept(const MessageSocket& listener) {
  pollfd waiting{listener.descriptor(), POLLIN, 0};
  while (::poll(&waiting, 1, 0) > 0) {
    MessageSocket comer = listener.accept();
    if (!comer.open()) continue;  // another user's
    const auto hello = receive_note(comer.descriptor());
    if (!hello || hello->note.rank <= own_ || hello->note.rank >= processes()) continue;
    MessageSocket& link = links_[static_cast<std::size_t>(hello->note.rank)];
    if (!link.open()) link = std::move(comer);
  }
}

void MemoryMesh::hand_over(int process, const MemoryNote& note, int descriptor) const {
  const MessageSocket& link =
      process == own_ ? to_itself_ : links_[static_cast<std::size_t>(process)];
  if (!link.open() || send_note(link.descriptor(), note, descriptor)) return;
  if (errno != EPIPE && errno != ECONNRESET) fail_to_hand_over(process);
}

std::optional<HandedMemory> MemoryMesh::take(int process) const {
  const MessageSocket& link = links_[static_cast<std::size_t>(process)];
  return link.open() ? receive_note(link.descriptor()) : std::nullopt;
}

}  // namespace ringlet::comm
