// A batch is split over replicas. Each function is called on every rank, and answers for that rank.
#include "split.h"

#include "learn.h"

namespace ringlet::learn {

// The ranks' images, one after the other, are the batch: every image is somebody's, none is two
// ranks'. Numbers of images differ by one at most, and the larger ones come first. There may be
// fewer images than ranks.
Share share_of(int rank, int ranks, int batch) { not_written_yet(rank, ranks, batch); }

// Afterwards the ranks' answers are added, and nothing else is done with the sum.
double contribution(double own_mean, int own, [[maybe_unused]] int ranks, int batch) {
  not_written_yet(own_mean, own, ranks, batch);
}

}  // namespace ringlet::learn
