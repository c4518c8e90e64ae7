// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of recipes and of --set.  Every input must give a recipe that is read back as it was written, or a
// vitrail::Error.  Settings follow the first zero byte, one per line.
//   corpus: recipes/*.json
#include <cstdlib>

#include "fuzz/inputs.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/train/recipe/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  std::string_view input = fuzz::text_of(data, size);
  const std::string json = fuzz::cut(input, '\0');
  fuzz::attempt([&] {
    const train::Recipe recipe = train::parse_recipe(json, "fuzz", fuzz::lines_of(input, 16));
    const std::string written = train::write_recipe(recipe);
    if (train::write_recipe(train::parse_recipe(written, "written")) != written) std::abort();
    if (!train::recipe_differences(written, written).empty()) std::abort();
    data::policy_from_name(recipe.augment.policy);
  });
  fuzz::attempt([&] { train::recipe_differences(json, std::string(input)); });  // a checkpoint's recipe is not checked
  return 0;
}
