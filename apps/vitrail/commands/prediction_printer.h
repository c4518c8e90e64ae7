// SPDX-License-Identifier: Apache-2.0
#pragma once
// The predictions of `vitrail classify` and `vitrail zeroshot`.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::app {

struct PredictionOptions {
  int64_t top = 5;
  std::string format = "text";

  void add_to(CLI::App& command);                 // --top, --format
  void default_to_json(const CLI::App& command);  // as frames have
};

// Prints the predictions for each image in the requested format.
class PredictionPrinter {
 public:
  // activation: "softmax", "sigmoid", or "none" for values as they are (models::activation_of()).
  PredictionPrinter(Format format, std::string activation);

  void print(const Outcome& outcome, const std::vector<Prediction>& predictions) const;
  void print_failure(const Outcome& outcome, const std::string& message) const;

 private:
  void print_text(const Outcome& outcome, const std::vector<Prediction>& predictions) const;

  Format format_;
  std::string activation_;
};

}  // namespace vitrail::app
