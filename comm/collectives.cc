#include "comm/collectives.h"

#include "kernels/elementwise.h"
#include "kernels/error.h"

namespace ringlet::comm {

void broadcast(Transport& transport, Stream& stream, int root, View data) {
  const int p = transport.size();
  require(0 <= root && root < p, "broadcast", "the root is a rank of the world");
  const int place = (transport.rank() - root + p) % p;  // in the tree, whose root has place 0
  const auto rank_at = [root, p](int other_place) { return (other_place + root) % p; };

  int bit = 1;  // the lowest bit of my place: my parent lacks it, my children have a lower one
  while (bit < p && (place & bit) == 0) bit *= 2;
  if (place != 0) transport.receive(stream, rank_at(place - bit), data);
  for (bit /= 2; bit > 0; bit /= 2) {
    if (place + bit < p) transport.send(stream, rank_at(place + bit), data);
  }
}

void all_gather(Transport& transport, Stream& stream, ConstView mine, View all) {
  const int p = transport.size();
  const int rank = transport.rank();
  const std::int64_t count = mine.count();
  require(all.count() == p * count && all.dtype() == mine.dtype(), "all_gather",
          "the result has as many elements as all ranks' parts together");
  const auto part = [&all, count](int of) { return all.slice(of * count, (of + 1) * count); };
  if (mine.data() != part(rank).data()) copy(stream, mine, part(rank));
  for (int step = 1; step < p; ++step) {
    const int above = (rank + step) % p;
    const int below = (rank + p - step) % p;
    transport.exchange(stream, above, mine, below, part(below));
  }
}

void barrier(Transport& transport, Stream& stream) {
  const int p = transport.size();
  const View nothing(nullptr, {0}, DType::u8);
  for (int distance = 1; distance < p; distance *= 2) {
    const int above = (transport.rank() + distance) % p;
    const int below = (transport.rank() + p - distance) % p;
    transport.exchange(stream, above, nothing, below, nothing);
  }
}

}  // namespace ringlet::comm
