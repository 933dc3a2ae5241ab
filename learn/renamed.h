// A learner's strategy under a name of its own, since the library's are taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "comm/all_reduce/strategies.h"

namespace ringlet::learn {

class Renamed final : public comm::AllReduce {
 public:
  Renamed(const char* name, comm::Transport& transport, std::unique_ptr<comm::AllReduce> own)
      : AllReduce(transport), name_(name), own_(std::move(own)) {}
  const char* name() const override { return name_; }
  void run(Stream& stream, View data, ReduceOp op) override { own_->run(stream, data, op); }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return own_->elements_sent(count);
  }

 private:
  const char* name_;
  std::unique_ptr<comm::AllReduce> own_;
};

/// `name`: a string literal.
inline comm::Strategy renamed(comm::Strategy strategy, const char* name) {
  strategy.name = name;
  strategy.make = [name, make = strategy.make](comm::Transport& transport) {
    return std::make_unique<Renamed>(name, transport, make(transport));
  };
  return strategy;
}

}  // namespace ringlet::learn
