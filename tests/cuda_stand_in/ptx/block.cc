#include "tests/cuda_stand_in/ptx/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace ringlet::ptx {

namespace {

constexpr int kEnded = std::numeric_limits<int>::max();

void fill(std::byte* row, int width, int threads, std::uint64_t bits) {
  for (int k = 0; k < threads; ++k) {
    std::memcpy(row + std::int64_t{k} * width, &bits, static_cast<std::size_t>(width));
  }
}

}  // namespace

Block::Block(const Program& program, int threads, int shared_bytes, RangeOf range_of)
    : program_(program),
      threads_(threads),
      range_of_(std::move(range_of)),
      rows_(static_cast<std::size_t>(std::int64_t{program.row_bytes} * threads)),
      pc_(static_cast<std::size_t>(threads)),
      at_barrier_(static_cast<std::size_t>(threads)),
      shared_(static_cast<std::size_t>(program.shared_bytes + shared_bytes)),
      touches_(shared_.size()),
      asked_(static_cast<std::size_t>(threads)),
      groups_(static_cast<std::size_t>(threads)) {
  for (const Program::Constant& constant : program.constants) {
    fill(row<std::byte>(constant.row), constant.row.width, threads, constant.bits);
  }
}

void Block::run(std::uint32_t block, std::uint32_t blocks,
                const std::vector<std::byte>& parameters) {
  parameters_ = &parameters;
  block_ = block;
  for (const auto& [name, row] : program_.specials) {
    auto* to = this->row<std::uint32_t>(row);
    for (int k = 0; k < threads_; ++k) {
      to[k] = name == "%tid.x"      ? static_cast<std::uint32_t>(k)
              : name == "%ctaid.x"  ? block
              : name == "%nctaid.x" ? blocks
              : name == "%ntid.x"   ? static_cast<std::uint32_t>(threads_)
                                    : throw Fault("a kernel asks for " + name);
    }
  }
  std::fill(pc_.begin(), pc_.end(), 0);
  ended_ = 0;
  waited_ = false;
  first_period_ = ++period_;
  for (Touch& touch : touches_) touch.coming = false;
  for (auto& asked : asked_) asked.clear();
  for (auto& groups : groups_) groups.clear();
  while (choose()) {
    while (at_ < next_) {
      const Instruction& at = program_.instructions[static_cast<std::size_t>(at_)];
      if (at.flow == Flow::next) {
        at.run(*this, at);
        ++at_;
      } else if (at.flow == Flow::branch) {
        at_ = branch(at);
        if (active_.empty()) break;
      } else if (at.flow == Flow::wait) {
        waited_ = waited_ || active_.size() == static_cast<std::size_t>(threads_);
        ++at_;
      } else if (at.flow == Flow::barrier) {
        arrive();
        break;
      } else {
        ended_ += static_cast<int>(active_.size());
        park(kEnded);
        break;
      }
    }
    park(at_);
  }
}

/// Makes those active that are furthest behind. False: all have ended.
bool Block::choose() {
  if (ended_ == threads_) return false;
  at_ = kEnded;
  for (int k = 0; k < threads_; ++k) {
    if (!at_barrier_[static_cast<std::size_t>(k)])
      at_ = std::min(at_, pc_[static_cast<std::size_t>(k)]);
  }
  if (at_ == kEnded) {
    pass_barrier();
    return choose();
  }
  next_ = kEnded;
  active_.clear();
  for (int k = 0; k < threads_; ++k) {
    const int pc = pc_[static_cast<std::size_t>(k)];
    if (at_barrier_[static_cast<std::size_t>(k)]) continue;
    if (pc == at_) {
      active_.push_back(k);
    } else {
      next_ = std::min(next_, pc);
    }
  }
  return true;
}

/// The active threads stand at `pc`, and are active no longer.
void Block::park(int pc) {
  for (const int k : active_) pc_[static_cast<std::size_t>(k)] = pc;
  active_.clear();
}

/// Where the active threads go on. Where they part, none is active afterwards.
int Block::branch(const Instruction& at) {
  if (at.guard.width == 0) return at.target;
  const auto* guard = row<std::uint8_t>(at.guard);
  const std::uint8_t wanted = at.unless ? 0 : 1;
  const auto takes = [&](int k) { return guard[k] == wanted; };
  const auto taken = std::count_if(active_.begin(), active_.end(), takes);
  if (taken == 0) return at_ + 1;
  if (taken == std::ssize(active_)) return at.target;
  for (const int k : active_) pc_[static_cast<std::size_t>(k)] = takes(k) ? at.target : at_ + 1;
  active_.clear();
  return at_;
}

void Block::arrive() {
  for (const int k : active_) {
    at_barrier_[static_cast<std::size_t>(k)] = true;
    pc_[static_cast<std::size_t>(k)] = at_ + 1;
  }
  active_.clear();
}

void Block::pass_barrier() {
  const int first = *std::min_element(pc_.begin(), pc_.end());
  at_ = first - 1;
  if (ended_ > 0) fail(fmt::format("{} threads have ended and never come to a barrier", ended_));
  const auto last = *std::max_element(pc_.begin(), pc_.end());
  if (last != first) fail("threads of a block wait at two barriers");
  std::fill(at_barrier_.begin(), at_barrier_.end(), false);
  ++period_;
}

void Block::fail(const std::string& what) const {
  const Instruction& at = program_.instructions[static_cast<std::size_t>(at_)];
  std::string_view source = program_.sources[static_cast<std::size_t>(at.line)];
  source.remove_prefix(source.rfind("../") == std::string_view::npos ? 0 : source.rfind("../") + 3);
  const std::string where = source.empty() ? "" : fmt::format("{}: ", source);
  throw Fault(fmt::format("{}kernel {}, block {}: {}", where, program_.name, block_, what));
}

std::byte* Block::global(std::uint64_t address, int bytes, int thread, const char* what) {
  const auto size = static_cast<std::uintptr_t>(bytes);
  if (!range_.holds(address, size)) range_ = range_of_(address);
  if (!range_.holds(address, size)) {
    if (range_.begin == range_.end) {
      fail(fmt::format("thread {} {} {} bytes at {:#x}, where nothing is allocated", thread, what,
                       bytes, address));
    }
    fail(fmt::format("thread {} {} {} bytes {} bytes behind the begin of an allocation of {} bytes",
                     thread, what, bytes, address - range_.begin, range_.end - range_.begin));
  }
  if (address % size != 0) {
    fail(fmt::format("thread {} {} {} bytes at {:#x}, which is no multiple of {}", thread, what,
                     bytes, address, bytes));
  }
  if (!waited_) {
    fail(fmt::format("thread {} {} memory before it waited for the kernel before this one", thread,
                     what));
  }
  return reinterpret_cast<std::byte*>(address);
}

std::byte* Block::shared(std::uint64_t address, int bytes, int thread, bool writes) {
  const char* what = writes ? "writes" : "reads";
  const auto size = static_cast<std::uint64_t>(bytes);
  if (address > shared_.size() || size > shared_.size() - address) {
    fail(fmt::format("thread {} {} bytes {} to {} of {} shared bytes", thread, what, address,
                     address + size, shared_.size()));
  }
  if (address % size != 0) {
    fail(fmt::format("thread {} {} {} shared bytes at {}, which is no multiple of {}", thread, what,
                     bytes, address, bytes));
  }
  const auto self = static_cast<std::int16_t>(thread);
  for (std::uint64_t i = address; i < address + size; ++i) {
    Touch& touch = touches_[i];
    if (touch.coming) {
      fail(fmt::format("thread {} {} shared byte {}, which a copy goes to that was not waited for",
                       thread, what, i));
    }
    if (!writes && touch.written < first_period_) {
      fail(fmt::format("thread {} reads shared byte {}, which nobody has written", thread, i));
    }
    if (touch.written == period_ && touch.writer != self) {
      fail(fmt::format("thread {} {} shared byte {}, which thread {} writes; no barrier is between",
                       thread, what, i, touch.writer));
    }
    if (writes) {
      if (touch.read == period_ && touch.reader != self) {
        fail(fmt::format("thread {} writes shared byte {}, which {} reads; no barrier is between",
                         thread, i,
                         touch.reader == kMany ? std::string("another")
                                               : fmt::format("thread {}", touch.reader)));
      }
      touch.written = period_;
      touch.writer = self;
    } else {
      touch.reader = touch.read == period_ && touch.reader != self ? kMany : self;
      touch.read = period_;
    }
  }
  return shared_.data() + address;
}

void Block::copy_later(std::uint64_t address, const std::byte* from, int thread) {
  Copy copy{address, {}};
  const int bytes = static_cast<int>(copy.bytes.size());
  shared(address, bytes, thread, true);
  mark(address, bytes, true);
  if (from != nullptr) std::memcpy(copy.bytes.data(), from, copy.bytes.size());
  asked_[static_cast<std::size_t>(thread)].push_back(copy);
}

void Block::mark(std::uint64_t address, int bytes, bool coming) {
  for (int i = 0; i < bytes; ++i) touches_[address + static_cast<std::uint64_t>(i)].coming = coming;
}

void Block::end_copies(int thread) {
  const auto k = static_cast<std::size_t>(thread);
  groups_[k].push_back(std::move(asked_[k]));
  asked_[k].clear();
}

void Block::await_copies(int thread, int left) {
  auto& groups = groups_[static_cast<std::size_t>(thread)];
  for (; std::ssize(groups) > left; groups.pop_front()) {
    for (const Copy& copy : groups.front()) {
      const int bytes = static_cast<int>(copy.bytes.size());
      mark(copy.address, bytes, false);
      std::memcpy(shared(copy.address, bytes, thread, true), copy.bytes.data(), copy.bytes.size());
    }
  }
}

std::int64_t Block::parameter(std::uint64_t offset, int bytes) const {
  if (offset + static_cast<std::uint64_t>(bytes) > parameters_->size()) {
    fail(fmt::format("reads {} bytes at {} of {} bytes of parameters", bytes, offset,
                     parameters_->size()));
  }
  return static_cast<std::int64_t>(offset);
}

}  // namespace ringlet::ptx
