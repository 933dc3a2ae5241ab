// Messages between processes, and the plans that they carry.
#include <cstring>

#include "comm/processes/message.h"
#include "comm/processes/plan_check.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

namespace {

std::string bytes_of(const comm::Message& message) {
  const comm::MessageHeader header = comm::header_of(message);
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + message.key + message.value;
}

}  // namespace

std::vector<std::string> seeds() {
  using Kind = comm::Message::Kind;
  const std::string plan = comm::to_text({{"seed", "1"}, {"", ""}, {"model", "lenet"}});
  return {bytes_of({.kind = Kind::hello, .number = 1, .key = "2", .value = plan}),
          bytes_of({.kind = Kind::set, .number = 0, .key = "key", .value = "value"}),
          bytes_of({.kind = Kind::farewell}), ""};
}

namespace {

void read(std::string_view bytes) {
  const auto message = comm::parse_message(bytes);
  if (!message) return;
  const auto again = comm::parse_message(bytes_of(*message));
  promise(again && again->kind == message->kind && again->number == message->number &&
              again->key == message->key && again->value == message->value,
          "a message comes back");
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
