// SPDX-License-Identifier: Apache-2.0
#pragma once
// The JSON form of predictions, which the command line and the server write.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {

// {"path", "activation", "predictions": [{"index", "label", "probability"}, …]}.  activation: "softmax", "sigmoid" or
// "none" (models::activation_of()); with "none", the probabilities are the values of a regression.
nlohmann::ordered_json prediction_json(const std::string& path, const std::string& activation,
                                       const std::vector<Prediction>& predictions);

// {"path", "error"}
nlohmann::ordered_json failure_json(const std::string& path, const std::string& message);

// One line.  Bytes that are not UTF-8 (in a path) become U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

// The `top` best labels of a row of probabilities, best first.
std::vector<Prediction> best_labels(const Tensor& probabilities, const std::vector<std::string>& labels, int64_t top);

// The names of "cat, dog", without the spaces around them, or of JSON, as in a file of labels.  Throws Error for an
// empty name, and for text in brackets that is no JSON.
std::vector<std::string> split_labels(const std::string& labels);

}  // namespace vitrail::pipeline
