// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/vitrail/inspect/table_functions.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/pipeline/class_names.h"

namespace vitrail::app {

TableClass::TableClass(const TableInput& input, const Tensor& logits) : names(pipeline::class_names(input.config)) {
  const std::string& of_class = input.options.of_class;
  const float* const values = logits.data<float>();
  index = of_class.empty() ? std::max_element(values, values + logits.numel()) - values
                           : pipeline::class_index("--class", of_class, names, logits.numel());
}

std::string TableClass::name_of(int64_t of) const {
  return names.empty() ? "class " + std::to_string(of) : escaped(names[static_cast<size_t>(of)]);
}

void TableClass::print(const Tensor& logits) const {
  const std::string name = names.empty() ? "" : " " + name_of(index);
  print_output("class {}{}, logit {:.4f}\n", index, name, logits.data<float>()[index]);
}

}  // namespace vitrail::app
