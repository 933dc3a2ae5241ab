// A strategy that is written in a test: what each rank does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "comm/schedule/recording.h"

namespace ringlet::comm {

using Body = std::function<void(Transport& transport, Stream& stream, const View& data)>;

class Written final : public AllReduce {
 public:
  Written(Transport& transport, Body body) : AllReduce(transport), body_(std::move(body)) {}
  const char* name() const override { return "written"; }
  void run(Stream& stream, View data, ReduceOp) override { body_(transport(), stream, data); }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 private:
  Body body_;
};

/// On one machine.
inline Schedule record_written(int ranks, const Body& body, const Recording& what) {
  return record(
      [&body](Transport& transport) { return std::make_unique<Written>(transport, body); },
      one_machine(ranks, {}), what);
}

}  // namespace ringlet::comm
