// Messages between processes, and the plans that they carry.
#include <string>
#include <vector>

#include "comm/processes/frames.h"
#include "comm/processes/hello.h"
#include "comm/processes/message.h"
#include "comm/processes/plan_check.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

namespace {

using comm::bytes_of;

/// What comes over TCP, in pieces of one length: the same messages however it is cut.
std::vector<std::string> messages_in(std::string_view bytes, std::size_t piece) {
  comm::Frames frames;
  frames.set_longest(comm::Frames::kLongestOfStranger);
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    frames.add(bytes.substr(at, piece));
    while (const auto message = frames.next()) messages.push_back(bytes_of(*message));
  }
  return messages;
}

}  // namespace

std::vector<std::string> seeds() {
  using Kind = comm::Message::Kind;
  const std::string plan = comm::to_text({{"seed", "1"}, {"", ""}, {"model", "lenet"}});
  return {bytes_of({.kind = Kind::hello, .number = 1, .key = "2", .value = plan}),
          bytes_of({.kind = Kind::set, .number = 0, .key = "key", .value = "value"}),
          bytes_of({.kind = Kind::farewell}),
          comm::frame_of(comm::to_message({.process = 1,
                                           .replicas = 2,
                                           .pid = 7,
                                           .machine = "m",
                                           .host = "b",
                                           .address = "10.0.0.2",
                                           .run = "r",
                                           .nonce = "t",
                                           .agreed = {{"version", "1"}}})) +
              comm::frame_of({.kind = Kind::beat}),
          comm::table_of({{0, 1, "a", "10.0.0.1"}, {1, 2, "b", "10.0.0.2"}}),
          ""};
}

namespace {

void read(std::string_view bytes) {
  promise(messages_in(bytes, 3) == messages_in(bytes, bytes.size() + 1),
          "a stream is the same messages however it is cut");
  const auto sites = comm::sites_of(std::string(bytes));
  promise(comm::sites_of(comm::table_of(sites)).size() == sites.size(), "a table comes back");
  const auto message = comm::parse_message(bytes);
  if (!message) return;
  const auto again = comm::parse_message(bytes_of(*message));
  promise(again && again->kind == message->kind && again->number == message->number &&
              again->key == message->key && again->value == message->value,
          "a message comes back");
  const comm::Hello hello = comm::hello_of(*message);
  promise(comm::hello_of(comm::to_message(hello)).host == hello.host, "a hello comes back");
  const comm::Plan plan = comm::plan_of(message->value);
  promise(comm::plan_of(comm::to_text(plan)) == plan, "a plan comes back");
  (void)comm::find_difference({message->value, message->key});
}

}  // namespace
}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringlet::fuzz::read(ringlet::fuzz::text_of(data, size));
  return 0;
}
