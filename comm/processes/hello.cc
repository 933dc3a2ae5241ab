#include "comm/processes/hello.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ringlet::comm {

namespace {

/// 0 for what is no number.
int number_of(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string value_of(const Plan& fields, const std::string& name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&name](const auto& field) { return field.first == name; });
  return found == fields.end() ? "" : found->second;
}

}  // namespace

Message to_message(const Hello& hello) {
  const Plan fields{{"replicas", std::to_string(hello.replicas)},
                    {"pid", std::to_string(hello.pid)},
                    {"machine", hello.machine},
                    {"host", hello.host},
                    {"address", hello.address},
                    {"run", hello.run},
                    {"nonce", hello.nonce},
                    {"protocol", hello.protocol},
                    {"failure", hello.failure}};
  return {.kind = Message::Kind::hello,
          .number = hello.process,
          .key = to_text(fields),
          .value = to_text(hello.agreed)};
}

Hello hello_of(const Message& message) {
  constexpr int kMostReplicas = 4096;  // whatever the other side says
  const Plan fields = plan_of(message.key);
  return {.process = message.number,
          .replicas = std::clamp(number_of(value_of(fields, "replicas")), 0, kMostReplicas),
          .pid = number_of(value_of(fields, "pid")),
          .machine = value_of(fields, "machine"),
          .host = value_of(fields, "host"),
          .address = value_of(fields, "address"),
          .run = value_of(fields, "run"),
          .nonce = value_of(fields, "nonce"),
          .protocol = value_of(fields, "protocol"),
          .failure = value_of(fields, "failure"),
          .agreed = plan_of(message.value)};
}

std::string table_of(const std::vector<Site>& sites) {
  Plan fields;
  for (const Site& site : sites) {
    fields.emplace_back(std::to_string(site.machine), std::to_string(site.pid));
    fields.emplace_back(site.host, site.address);
  }
  return to_text(fields);
}

std::vector<Site> sites_of(const std::string& text) {
  const Plan fields = plan_of(text);
  std::vector<Site> sites;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    sites.push_back({number_of(fields[i].first), number_of(fields[i].second), fields[i + 1].first,
                     fields[i + 1].second});
  }
  return sites;
}

}  // namespace ringlet::comm
