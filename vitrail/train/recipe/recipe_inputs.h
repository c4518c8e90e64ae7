// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data and the start of a recipe: what the command line replaces, and where paths are looked up.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// The settings (parse_recipe) that make a dataset the data of a recipe: its splits train, val and test, or all images
// for training if it has no splits.  The splits and the hold-out of the recipe's own data are unset.
// objective: the recipe's, on which the formats of datasets depend.  Throws Error if there is no dataset.
// columns: DataRecipe::columns.  manifests: where the set is read.
std::vector<std::string> dataset_settings(const std::string& path, const std::string& objective = "classify",
                                          const std::string& columns = "", data::Manifests manifests = {});

// The objective of a recipe, whose other fields may still be incomplete.  `file` as for read_recipe().
std::string recipe_objective(const std::filesystem::path& file);

// The settings that make a model the start of a recipe.
std::vector<std::string> start_settings(const std::string& model);

// The dataset of a recipe: a path relative to the working directory, else one that is distributed with vitrail
// (base/installed_files.h).  Throws Error that says how to get it if there is nothing.
std::filesystem::path find_dataset(const std::string& path);

// The set at a path of the recipe, read once.  Throws Error as find_dataset and data::read_manifest.
std::shared_ptr<const data::Manifest> manifest_of(const DataRecipe& recipe, const std::string& path);

}  // namespace vitrail::train
