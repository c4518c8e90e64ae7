// SPDX-License-Identifier: Apache-2.0
#pragma once
// `vitrail bench` of Segment Anything.
#include <string>
#include <vector>

#include "apps/vitrail/output/table_format.h"

namespace vitrail::app {

struct SegmentBench {
  std::string model;  // a registered architecture or a path
  std::vector<std::string> precisions;
  double seconds = 3;  // duration of each measurement
  int threads = 0;     // 0: all cores
  TableFormat format{};
};

// Prints a row or an object for each precision and task: the image encoder, one click, 64 clicks, and everything in the
// image.
void bench_segmentation(const SegmentBench& options);

}  // namespace vitrail::app
