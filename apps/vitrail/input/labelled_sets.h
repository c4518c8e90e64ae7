// SPDX-License-Identifier: Apache-2.0
#pragma once
// The labelled sets of a command, and the option that says the columns of lists.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "vitrail/data/datasets/manifest.h"

namespace vitrail::app {

// Adds --columns.
CLI::Option* add_columns(CLI::App& command, std::string& columns);

// Each set is read once, whatever is opened of it.
struct LabelledSets {
  std::string columns{};  // --columns
  data::Manifests manifests{};

  // Throws Error as data::read_manifest and data::Manifest::open.
  std::unique_ptr<data::Dataset> open(const std::string& path, const data::DatasetOptions& options) {
    return manifests.get(path, {.columns = data::parse_columns(columns)})->open(options);
  }
};

}  // namespace vitrail::app
