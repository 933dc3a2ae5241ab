// Gloo's all-reduce algorithms, over TCP on the loopback. Of the transports in Debian's build, only
// TCP needs no InfiniBand.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gloo {
class Context;
}

namespace ringlet::bench::peers {

/// "ring", "ring-chunked", "halving-doubling", "bcube" (classes that keep their buffers from call
/// to call), "allreduce-ring", "allreduce-bcube" (gloo::allreduce, which makes them anew).
const std::vector<std::string>& gloo_strategies();

/// "tcp": a thread of Gloo's waits for the sockets. "tcp-sync": the rank itself blocks in them.
/// "tcp-busy-poll": the rank itself asks them again and again. gloo::allreduce knows the first
/// only.
const std::vector<std::string>& gloo_transports();

bool runs_on(const std::string& strategy, const std::string& transport);

/// Joins rank `rank` of `ranks` with its peers, which call this alike. They find each other by
/// files in `folder`, and listen on `address`. Throws what Gloo throws.
std::shared_ptr<gloo::Context> connect_gloo(const std::string& transport, int rank, int ranks,
                                            const std::string& folder, const std::string& address);

/// Returns a function that sums `data` over the ranks, in place, at each call. Collective. `data`
/// and `context` must outlive it.
std::function<void()> gloo_all_reduce(const std::string& strategy,
                                      const std::shared_ptr<gloo::Context>& context,
                                      std::span<float> data);

}  // namespace ringlet::bench::peers
