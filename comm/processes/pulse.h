// Pulse: signs of life over one connection between machines. There a process that is stopped, a
// machine that is off and a link that is cut look alike: the connection stays, and nothing comes.
//
// Each side says something every beat, and takes the other one for dead after four beats of
// silence. A side that was itself stopped meanwhile has heard nothing because of that; it blames
// nobody for such a time.
#pragma once

#include <chrono>

namespace ringlet::comm {

class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBeat{2000};
  static constexpr int kBeatsOfSilence = 4;

  explicit Pulse(Clock::duration beat = kBeat) : beat_(beat) {}

  /// How often look() is to be called at least.
  Clock::duration pause() const { return beat_ / 4; }
  Clock::duration silence() const { return kBeatsOfSilence * beat_; }

  /// Something has come from the other side. To be called before look() of the same turn.
  void hear(Clock::time_point now) { heard_ = now; }
  void look(Clock::time_point now) {
    const Clock::duration since = now - looked_;
    if (since > 2 * beat_) heard_ += since;  // this side was stopped
    if (heard_ > now) heard_ = now;
    looked_ = now;
  }
  bool is_dead() const { return looked_ - heard_ > silence(); }
  /// Whether it is time for a sign of life. Says so once a beat.
  bool is_due(Clock::time_point now) {
    if (now - said_ < beat_) return false;
    said_ = now;
    return true;
  }

 private:
  Clock::duration beat_;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point looked_ = heard_;
  Clock::time_point said_ = heard_;
};

}  // namespace ringlet::comm
