// SPDX-License-Identifier: Apache-2.0
#pragma once
// The predictions of `vitrail classify` and `vitrail zeroshot`.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/vitrail/output.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::app {

struct PredictionOptions {
  int64_t top = 5;
  std::string format = "text";

  void add_to(CLI::App& command);  // --top, --format
};

// Prints the predictions for each image in the requested format.
class PredictionPrinter {
 public:
  // sigmoid: the probabilities are those of independent classes.
  PredictionPrinter(Format format, bool sigmoid);

  void print(const std::string& path, const std::vector<Prediction>& predictions) const;
  void print_failure(const std::string& path, const std::string& message) const;

 private:
  void print_text(const std::string& path, const std::vector<Prediction>& predictions) const;
  void print_object(const std::string& path, const std::vector<Prediction>& predictions) const;

  Format format_;
  bool sigmoid_;
};

}  // namespace vitrail::app
