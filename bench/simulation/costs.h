// What messages cost in a simulation: numbers that somebody gives, or those that were fitted to
// measurements, of each strategy its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"
#include "bench/simulation/quantities.h"
#include "comm/core/cost_model.h"

namespace ringlet::bench {

struct LinkCosts {
  comm::CostModel between{};  ///< machines; of a single machine's ranks where there is one
  comm::CostModel inside{};
};

class Costs {
 public:
  /// The same for each strategy.
  explicit Costs(const LinkCosts& given) : given_(given) {}
  /// Fitted to rows that were measured: to sums of f32 in place, as those are what is simulated.
  /// `source` is where they are from, for messages.
  Costs(const std::vector<Measurement>& rows, std::string source);

  /// By the fit for the number of ranks that is nearest by ratio; of several, as of threads and of
  /// processes, by the quickest over the sizes that they share. Fits over several machines count
  /// what stays inside of a machine as nothing (comparison.h), so then `inside` is free. Nothing
  /// for a strategy that was not measured on one machine, or on several, as `layout` is.
  std::optional<LinkCosts> of(std::string_view strategy, const Layout& layout) const;
  bool given() const { return given_.has_value(); }
  /// How far at worst the fit that of() takes is from what was measured (comm::CostFit).
  std::optional<double> worst_error(std::string_view strategy, const Layout& layout) const;
  /// "latency 5 us, 50G bytes a second, ..." or where the fits are from.
  std::string to_text(const Layout& layout) const;
  /// Why of() has nothing: "FILE has no costs of ring on one machine".
  std::string why_not(std::string_view strategy, const Layout& layout) const;

 private:
  struct Fitted {
    std::string strategy;
    int ranks = 2;
    int machines = 1;
    comm::CostModel model;
    std::optional<double> worst_error;
    std::map<std::int64_t, double> times{};  ///< measured, by size
  };
  static bool is_quicker(const Fitted& a, const Fitted& b);
  const Fitted* nearest(std::string_view strategy, const Layout& layout) const;

  std::optional<LinkCosts> given_;
  std::vector<Fitted> fitted_;
  std::string source_;
};

/// The rows of a file of `bench all-reduce --json` or of `ringlet tune`; of a table that was tuned
/// for several transports, those of threads, else of processes. Empty where a table has no times.
/// Throws FileError.
std::vector<Measurement> measured_rows(const std::filesystem::path& file);

}  // namespace ringlet::bench
