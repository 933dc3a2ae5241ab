// Chapter 0: how a batch is split over replicas, and what each of them adds to the common gradient.
#pragma once

namespace ringlet::learn {

/// Images [begin, end) of a batch.
struct Share {
  int begin = 0, end = 0;
};

/// The images of `rank`, 0 <= rank < ranks, of a batch of so many.
Share share_of(int rank, int ranks, int batch);

/// What a rank hands in, which has `own` images and the mean gradient `own_mean` over them (0 where
/// it has none). The sum over all ranks is the mean gradient over the batch.
double contribution(double own_mean, int own, int ranks, int batch);

}  // namespace ringlet::learn
