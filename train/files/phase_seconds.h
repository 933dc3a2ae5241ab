// PhaseSeconds: where the time of a replica's thread goes.
#pragma once

namespace ringlet::train {

/// Seconds of the replica's thread by what it did.
struct PhaseSeconds {
  double data = 0;  ///< waiting for the loader
  double forward = 0;
  double backward = 0;
  /// Collectives that run in place, waiting for those beside, and messages of a model in stages.
  double sync = 0;
  double update = 0;
  double total() const { return data + forward + backward + sync + update; }
  PhaseSeconds operator+(const PhaseSeconds& other) const {
    return {data + other.data, forward + other.forward, backward + other.backward,
            sync + other.sync, update + other.update};
  }
  PhaseSeconds since(const PhaseSeconds& earlier) const {
    return {data - earlier.data, forward - earlier.forward, backward - earlier.backward,
            sync - earlier.sync, update - earlier.update};
  }
  bool operator==(const PhaseSeconds&) const = default;
};

}  // namespace ringlet::train
