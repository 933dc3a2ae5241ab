// The collectives that need one algorithm only: broadcast, reduce, reduce_scatter, all_gather,
// all_to_all and barrier.
#pragma once

#include "comm/all_reduce/collectives.h"
