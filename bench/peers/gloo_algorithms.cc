#include "bench/peers/gloo_algorithms.h"

#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <stdexcept>

namespace ringlet::bench::peers {

namespace {

constexpr std::chrono::seconds kTimeout{30};

using Context = std::shared_ptr<gloo::Context>;

template <class Algorithm>
std::function<void()> keep_running(const Context& context, std::span<float> data) {
  const auto algorithm = std::make_shared<Algorithm>(context, std::vector<float*>{data.data()},
                                                     static_cast<int>(data.size()));
  return [algorithm] { algorithm->run(); };
}

std::function<void()> call_anew(const Context& context, std::span<float> data,
                                gloo::AllreduceOptions::Algorithm algorithm) {
  return [context, data, algorithm] {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(algorithm);
    options.setOutput(data.data(), data.size());
    options.setReduceFunction([](void* sum, const void* a, const void* b, std::size_t count) {
      gloo::sum<float>(sum, a, b, count);
    });
    gloo::allreduce(options);
  };
}

}  // namespace

const std::vector<std::string>& gloo_strategies() {
  static const std::vector<std::string> names{"ring",  "ring-chunked",   "halving-doubling",
                                              "bcube", "allreduce-ring", "allreduce-bcube"};
  return names;
}

const std::vector<std::string>& gloo_transports() {
  static const std::vector<std::string> names{"tcp", "tcp-sync", "tcp-busy-poll"};
  return names;
}

bool runs_on(const std::string& strategy, const std::string& transport) {
  return transport == "tcp" || !strategy.starts_with("allreduce-");
}

Context connect_gloo(const std::string& transport, int rank, int ranks, const std::string& folder,
                     const std::string& address) {
  std::shared_ptr<gloo::transport::Device> device =
      gloo::transport::tcp::CreateDevice(address.c_str());
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->setTimeout(kTimeout);
  gloo::rendezvous::FileStore files(folder);
  gloo::rendezvous::PrefixStore store(transport, files);
  context->connectFullMesh(store, device);
  if (transport != "tcp") {
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) context->getPair(peer)->setSync(true, transport == "tcp-busy-poll");
    }
  }
  return context;
}

std::function<void()> gloo_all_reduce(const std::string& strategy, const Context& context,
                                      std::span<float> data) {
  using Options = gloo::AllreduceOptions;
  if (strategy == "ring") return keep_running<gloo::AllreduceRing<float>>(context, data);
  if (strategy == "ring-chunked") {
    return keep_running<gloo::AllreduceRingChunked<float>>(context, data);
  }
  if (strategy == "halving-doubling") {
    return keep_running<gloo::AllreduceHalvingDoubling<float>>(context, data);
  }
  if (strategy == "bcube") return keep_running<gloo::AllreduceBcube<float>>(context, data);
  if (strategy == "allreduce-ring") return call_anew(context, data, Options::Algorithm::RING);
  if (strategy == "allreduce-bcube") return call_anew(context, data, Options::Algorithm::BCUBE);
  throw std::invalid_argument("there is no strategy '" + strategy + "' of Gloo");
}

}  // namespace ringlet::bench::peers
