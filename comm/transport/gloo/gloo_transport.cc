#include "comm/transport/gloo/gloo_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/processors.h"
#include "comm/processes/joined_group.h"
#include "comm/processes/peer_sockets.h"
#include "comm/processes/tcp_socket.h"
#include "comm/transport/between/between_transport.h"
#include "comm/transport/gloo/gloo_collectives.h"
#include "comm/transport/gloo/gloo_mesh.h"

namespace ringlet::comm {

namespace {

class GlooBuffer final : public MessageBuffer {
 public:
  explicit GlooBuffer(GlooMesh& mesh) : mesh_(mesh) {}

  std::byte* data() override { return memory_.data(); }
  void reserve(std::size_t bytes) override {
    if (buffer_ && bytes <= memory_.size()) return;
    const std::lock_guard lock(mutex_);
    buffer_.reset();
    memory_.resize(bytes);
    buffer_ = mesh_.createUnboundBuffer(memory_.data(), bytes);
  }
  void send(int process, const MessageSlot& slot, std::size_t begin, std::size_t bytes) override {
    const Resting resting(mesh_.loop_to_rest());
    in_words_of_gloo([&] { buffer_->send(process, number_of(slot), begin, bytes); });
  }
  void receive(int process, const MessageSlot& slot, std::size_t begin,
               std::size_t bytes) override {
    const Resting resting(mesh_.loop_to_rest());
    in_words_of_gloo([&] { buffer_->recv(process, number_of(slot), begin, bytes); });
  }
  void wait_sent(std::chrono::milliseconds timeout) override {
    in_words_of_gloo([&] { buffer_->waitSend(nullptr, timeout); });
  }
  void wait_received(std::chrono::milliseconds timeout) override {
    in_words_of_gloo([&] { buffer_->waitRecv(nullptr, timeout); });
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    if (!buffer_) return;
    buffer_->abortWaitSend();
    buffer_->abortWaitRecv();
  }

 private:
  /// Gloo would end the process on a message that is longer than its receiver expects.
  static std::uint64_t number_of(const MessageSlot& slot) {
    constexpr int kChannelBits = 3;
    static_assert(Group::kMostChannels == 1 << kChannelBits);
    return (slot.channel << (64 - kChannelBits)) | (slot.bytes * slot.pairs + slot.pair);
  }

  GlooMesh& mesh_;
  std::mutex mutex_;  // guards buffer_ against wake()
  std::vector<std::byte> memory_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class GlooEngine final : public MessageEngine {
 public:
  explicit GlooEngine(std::shared_ptr<GlooMesh> mesh)
      : mesh_(std::move(mesh)), context_(std::make_shared<GlooContext>(mesh_)) {}

  const char* name() const override { return "gloo"; }
  const char* title() const override { return "Gloo"; }
  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<GlooBuffer>(*mesh_);
  }
  void all_reduce(const EngineCall& call) override {
    in_words_of_gloo([&] { gloo_all_reduce(context_, call); });
  }
  void reduce_and_broadcast(const EngineCall& call) override {
    in_words_of_gloo([&] { gloo_reduce_and_broadcast(context_, call); });
  }
  void break_off() override { context_->break_off(); }
  LoopRest* loop_to_rest() override { return mesh_->loop_to_rest(); }
  std::uint64_t moves() const override { return context_->waits_ended(); }

 private:
  std::shared_ptr<GlooMesh> mesh_;
  std::shared_ptr<GlooContext> context_;  // of Gloo's own collectives
};

/// Ignores SIGPIPE, unless the program has a handler of its own.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

/// Collective over the processes of this machine: each counts its own processors, and all those of
/// the machine.
int spare_processors(JoinedGroup& group, double timeout_seconds) {
  const int threads = group.replicas() + 1;
  const int processes = static_cast<int>(group.processes_here().size());
  const int on_machine = group.processors(timeout_seconds) - processes * threads;
  return std::min(usable_processors() - threads, on_machine);
}

/// The address of the loopback that this machine has: a network of its own may have but one.
std::string loopback() {
  std::string failure;
  const Descriptor four(listen_tcp({"127.0.0.1", 0}, failure));
  return four.open() ? "127.0.0.1" : "::1";
}

std::shared_ptr<GlooMesh> connect_mesh(JoinedGroup& group, double timeout_seconds) {
  const bool is_loopback = group.machines() == 1;
  const std::string address = is_loopback ? loopback() : group.address();
  try {
    return std::make_shared<GlooMesh>(group.rendezvous().position(),
                                      connect_peers(group.rendezvous(), address, timeout_seconds),
                                      timeout_seconds);
  } catch (const Aborted&) {
    throw;
  } catch (const std::system_error&) {  // says by itself what this machine lacks
    if (group.await_explanation()) throw Aborted(*group.root_cause());
    throw;
  } catch (const std::exception& error) {
    if (group.await_explanation()) throw Aborted(*group.root_cause());
    const std::string why = words_of_gloo(error);
    if (!is_loopback) {
      throw CommError(
          fmt::format("process {} at {} cannot be connected with the others ({}): {}; look whether "
                      "a firewall lets all ports through between the machines",
                      group.process(), group.address(), group.hosts(), why));
    }
    if (why.find("; ") != std::string::npos) {  // it has its remedy
      throw CommError("Gloo cannot connect the processes: " + why);
    }
    throw CommError(
        fmt::format("Gloo cannot connect the processes: {}; look whether the loopback is blocked "
                    "or down (ip link set lo up), or use --replicas in one process",
                    why));
  }
}

}  // namespace

bool has_gloo() { return true; }

void require_gloo_between(const std::string& /*hosts*/) {}

ConnectChannel connect_gloo(JoinedGroup& group, double timeout_seconds, ConnectChannel on_machine) {
  ignore_broken_pipes();
  const std::shared_ptr<GlooMesh> mesh = connect_mesh(group, timeout_seconds);
  if (group.aborted()) throw Aborted(*group.root_cause());

  mesh->set_spare_processors(spare_processors(group, timeout_seconds));
  return join_between(group, std::make_shared<GlooEngine>(mesh), std::move(on_machine));
}

}  // namespace ringlet::comm
