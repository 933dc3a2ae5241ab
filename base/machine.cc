#include "base/machine.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/descriptor.h"

namespace ringlet {

namespace {

constexpr int kNetworkNumber = 71;  // SO_NETNS_COOKIE, which older headers lack

std::string network_namespace() {
  std::array<char, 64> name{};
  const ssize_t length = ::readlink("/proc/self/ns/net", name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(length > 0 ? length : 0)};
}

/// Where /proc is not mounted: what the host is called, and its network namespace's number since
/// the kernel began (Linux 5.14). Two machines of one name are taken for one then.
std::string machine_without_proc() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::uint64_t number = 0;
  socklen_t length = sizeof number;
  ::getsockopt(socket.get(), SOL_SOCKET, kNetworkNumber, &number, &length);
  return fmt::format("{} {}", host_name(), number);
}

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The build id among the notes in [data, data + bytes), in hexadecimal digits.
std::string id_in_notes(const char* data, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, data + at, sizeof note);
    const std::size_t begin = at + sizeof note + padded(note.n_namesz);
    const std::size_t end = begin + note.n_descsz;
    if (end > bytes) return {};
    std::string id;
    for (std::size_t i = begin; i < end; ++i) {
      id += fmt::format("{:02x}", static_cast<unsigned char>(data[i]));
    }
    if (note.n_type == NT_GNU_BUILD_ID) return id;
    at = begin + padded(note.n_descsz);
  }
  return {};
}

/// For dl_iterate_phdr(3), which gives the program itself first.
int take_build_id(dl_phdr_info* program, std::size_t /*size*/, void* id) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& part = program->dlpi_phdr[i];
    auto& found = *static_cast<std::string*>(id);
    if (part.p_type != PT_NOTE || !found.empty()) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): so the loader gives it
    found =
        id_in_notes(reinterpret_cast<const char*>(program->dlpi_addr + part.p_vaddr), part.p_memsz);
  }
  return 1;
}

}  // namespace

std::string this_machine() {
  const std::string id = boot_id(), network = network_namespace();
  return id.empty() || network.empty() ? machine_without_proc() : id + " " + network;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(take_build_id, &id);
  return id;
}

}  // namespace ringlet
