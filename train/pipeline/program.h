// A pipeline as data: for each stage of a model the list of what it does in one step.
//
//   stage        a contiguous part of a model's layers, on a device of its own; 0 has the input
//   micro-batch  a part of a step's batch that goes through the stages by itself (--accumulate's)
//   pass         what a stage keeps of a micro-batch between its forward and its backward
//
//   Forward k    the stage's layers, from activation k of the stage before to its own activation k
//   Backward k   back: from gradient k of the next stage to gradient k, which the stage before gets
//   Move         one exchange with others: at most one message out and one in, at the same time
//   Sync         the sum of gradients over the stage's replicas; the update comes behind it
//
// A Move is a rendezvous: a message goes when both sides have come to it, and a Move is over when
// its messages are. Messages from one stage to another arrive in the order in which they were sent.
//
// Two stages and two micro-batches by 1F1B (schedules.h):
//
//   stage 0   F0, send a0 to 1, F1, (send a1 to 1, receive g0 from 1), B0, receive g1 from 1, B1
//   stage 1   receive a0 from 0, F0, B0, (send g0 to 0, receive a1 from 0), F1, B1, send g1 to 0
//
// where ( ) is one Move. Each has a Sync at its end. Nothing here knows of devices, tensors or
// threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ringlet::train {

struct Forward {
  int micro_batch = 0;
  bool operator==(const Forward&) const = default;
};

struct Backward {
  int micro_batch = 0;
  bool operator==(const Backward&) const = default;
};

/// What goes over a cut: activations to the next stage, their gradients to the one before.
enum class Payload : std::uint8_t { activation, gradient };

const char* name_of(Payload payload);  ///< "activation"

/// One side's half of a message.
struct Message {
  int peer = 0;  ///< the stage that it goes to or comes from
  Payload payload = Payload::activation;
  int micro_batch = 0;
  bool operator==(const Message&) const = default;
};

/// One exchange. At least one side is there; with both, neither waits for the other.
struct Move {
  std::optional<Message> out{};
  std::optional<Message> in{};
  bool operator==(const Move&) const = default;
};

struct Sync {
  bool operator==(const Sync&) const = default;
};

using Action = std::variant<Forward, Backward, Move, Sync>;

/// What one stage does in a step, in order.
using Program = std::vector<Action>;

struct Pipeline {
  std::string schedule;             ///< the name of what made it, for messages: "1f1b"
  int micro_batches = 0;            ///< m, of each step
  std::vector<Program> programs{};  ///< [p]
  std::vector<int> most_held{};     ///< [p], the passes that a stage has room for

  int stages() const { return static_cast<int>(programs.size()); }  ///< p
  /// The most passes that `stage` may hold at once. Throws std::out_of_range.
  int held(int stage) const { return most_held.at(static_cast<std::size_t>(stage)); }
};

/// "F3", "B3", "send a3 to 1", "send a3 to 1, receive g1 from 1", "sync".
std::string text_of(const Action& action);
/// What a rank does, for messages: "forward of micro-batch 3", "handing on the activation of
/// micro-batch 3 and waiting for the gradient of micro-batch 1", "summing gradients".
std::string in_words(const Action& action);
/// The action that text_of() writes so; nothing for any other text.
std::optional<Action> action_of(std::string_view text);
/// In the trace of a run of several stages each action is a span of this category on its rank's
/// compute stream, named by text_of(). A Move's begins when the rank comes to it, and so has the
/// waiting in it. A step's update comes behind its Sync. `ringlet pipeline --from TRACE` reads
/// them.
inline constexpr const char* kTracedActions = "pipeline";
/// All of a program: "F0; send a0 to 1; receive g0 from 1; B0; sync".
std::string text_of(const Program& program);
/// "sends activation 3 to stage 1", "receives gradient 1 from stage 1".
std::string sending(const Message& out);
std::string receiving(const Message& in);

/// The passes that a stage holds after each action of its program, [actions]. A pass is held from
/// its forward until its backward is done, and its gradient, where one leaves the stage, is sent.
std::vector<int> passes_held(const Program& program);

}  // namespace ringlet::train
