#include "train/pipeline/program.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <system_error>

namespace ringlet::train {

namespace {

/// "a3"
std::string short_name(const Message& message) {
  return fmt::format("{}{}", message.payload == Payload::activation ? 'a' : 'g',
                     message.micro_batch);
}

std::string text_of_move(const Move& move) {
  std::string text;
  if (move.out) text = fmt::format("send {} to {}", short_name(*move.out), move.out->peer);
  if (move.out && move.in) text += ", ";
  if (move.in) text += fmt::format("receive {} from {}", short_name(*move.in), move.in->peer);
  return text.empty() ? "move nothing" : text;
}

/// A text that is read word by word.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Of a micro-batch or a stage: there are never so many that one could not be added to it.
  std::optional<int> number() {
    constexpr int kMost = 1 << 24;
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0 || value > kMost) return {};
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  /// "a3 to 1"
  std::optional<Message> message(std::string_view between) {
    const bool is_activation = take("a");
    if (!is_activation && !take("g")) return {};
    const auto micro_batch = number();
    if (!micro_batch || !take(between)) return {};
    const auto peer = number();
    if (!peer) return {};
    return Message{*peer, is_activation ? Payload::activation : Payload::gradient, *micro_batch};
  }

 private:
  std::string_view rest_;
};

/// The gradient that an action sends.
const Message* gradient_sent(const Action& action) {
  const Move* move = std::get_if<Move>(&action);
  const bool sends = move != nullptr && move->out && move->out->payload == Payload::gradient;
  return sends ? &*move->out : nullptr;
}

}  // namespace

std::string in_words(const Action& action) {
  if (const auto* forward = std::get_if<Forward>(&action)) {
    return fmt::format("forward of micro-batch {}", forward->micro_batch);
  }
  if (const auto* backward = std::get_if<Backward>(&action)) {
    return fmt::format("backward of micro-batch {}", backward->micro_batch);
  }
  const auto* move = std::get_if<Move>(&action);
  if (move == nullptr) return "summing gradients";
  const auto name = [](const Message& message) {
    return fmt::format("the {} of micro-batch {}", name_of(message.payload), message.micro_batch);
  };
  std::string text;
  if (move->out) text = "handing on " + name(*move->out);
  if (move->out && move->in) text += " and ";
  if (move->in) text += "waiting for " + name(*move->in);
  return text;
}

const char* name_of(Payload payload) {
  return payload == Payload::activation ? "activation" : "gradient";
}

std::string text_of(const Action& action) {
  if (const auto* forward = std::get_if<Forward>(&action)) {
    return fmt::format("F{}", forward->micro_batch);
  }
  if (const auto* backward = std::get_if<Backward>(&action)) {
    return fmt::format("B{}", backward->micro_batch);
  }
  if (const auto* move = std::get_if<Move>(&action)) return text_of_move(*move);
  return "sync";
}

std::optional<Action> action_of(std::string_view text) {
  if (text == "sync") return Sync{};
  Words words(text);
  Action action;
  if (words.take("F") || words.take("B")) {
    const auto micro_batch = words.number();
    if (!micro_batch) return {};
    action = text.front() == 'F' ? Action(Forward{*micro_batch}) : Action(Backward{*micro_batch});
  } else {
    Move move;
    if (words.take("send ")) {
      if (!(move.out = words.message(" to "))) return {};
      if (!words.at_end() && !words.take(", ")) return {};
    }
    if (words.take("receive ") && !(move.in = words.message(" from "))) return {};
    if (!move.out && !move.in) return {};
    action = move;
  }
  // What reads as an action may be written otherwise: "F03".
  if (!words.at_end() || text_of(action) != text) return {};
  return action;
}

std::string text_of(const Program& program) {
  std::string text;
  for (const Action& action : program) text += (text.empty() ? "" : "; ") + text_of(action);
  return text;
}

std::string sending(const Message& out) {
  return fmt::format("sends {} {} to stage {}", name_of(out.payload), out.micro_batch, out.peer);
}

std::string receiving(const Message& in) {
  return fmt::format("receives {} {} from stage {}", name_of(in.payload), in.micro_batch, in.peer);
}

std::vector<int> passes_held(const Program& program) {
  std::set<int> leaving;  // the micro-batches whose gradients are sent
  for (const Action& action : program) {
    if (const Message* gradient = gradient_sent(action)) leaving.insert(gradient->micro_batch);
  }
  std::vector<int> held;
  int now = 0;
  for (const Action& action : program) {
    const auto* backward = std::get_if<Backward>(&action);
    if (std::holds_alternative<Forward>(action)) ++now;
    if (backward != nullptr && leaving.count(backward->micro_batch) == 0) --now;
    if (gradient_sent(action) != nullptr) --now;
    held.push_back(now);
  }
  return held;
}

}  // namespace ringlet::train
