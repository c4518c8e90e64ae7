// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names of a model's classes.
#include <string>
#include <vector>

#include "vitrail/models/model_config.h"

namespace vitrail::pipeline {

// The class names: from the given file, else from the model's configuration, else ImageNet-1k's for a model that was
// trained on it (models::has_imagenet_classes()), else empty.  The file has one name per line in UTF-8 (a byte-order
// mark and blank lines at the end are ignored), or JSON: a list of names, or id2label or label2id by themselves or in a
// config.json.  Throws Error if it does not have num_classes names, and warns if they are the model's own in another
// order.
std::vector<std::string> class_names(const models::ModelConfig& config, const std::string& labels_file = "");

// The index of the class that `text` names: the first class of this name, else the index itself.  names: empty, or one
// for each class.  Throws Error naming `where` for the name of no class and an index outside 0 to num_classes − 1.
int64_t class_index(const std::string& where, const std::string& text, const std::vector<std::string>& names,
                    int64_t num_classes);

}  // namespace vitrail::pipeline
