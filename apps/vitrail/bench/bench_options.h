// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `vitrail bench`.
#include <string>
#include <vector>

#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct NamedModel;

struct BenchCommandOptions {
  ModelOptions model;
  std::vector<int64_t> batches{1, 8};
  std::vector<std::string> precisions{"fp32"};
  double seconds = 3;
  bool profile = false, train = false, checkpointing = false;
  bool batches_given = false;
  TableFormat format;
};

int bench_image_model(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
