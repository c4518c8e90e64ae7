// SPDX-License-Identifier: Apache-2.0
#pragma once
// `vitrail bench --profile`: the steps of a compiled program, with what runs each and how fast.
#include <map>
#include <string>

#include "apps/vitrail/output/table_format.h"
#include "vitrail/infer/roofline.h"
#include "vitrail/infer/session.h"

namespace vitrail::app {

class ProfilePrinter {
 public:
  ProfilePrinter(std::string model, const TableFormat& format) : model_(std::move(model)), format_(format) {}

  // Profiles one pass of these images.  Prints an object with --format json, else a table.
  void print(const infer::Session& session, const Tensor& images);

 private:
  std::string model_;
  TableFormat format_;
  std::map<int, infer::Roofline> rooflines_;  // by threads, so that each rate is measured once
};

}  // namespace vitrail::app
