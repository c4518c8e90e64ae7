// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_tree.h"

#include "apps/vitrail/output/output.h"

namespace vitrail::app {

void print_tree(const nn::Module& model) {
  print_output("{}\n\n{:50s} {:>12s}\n", model.to_string(), "module", "parameters");
  for (const auto& [name, module] : model.named_modules()) {
    const int64_t count = module->num_parameters();
    if (count > 0) print_output("{:50s} {:>12d}\n", name.empty() ? module->type() : name, count);
  }
}

void print_parameters(const nn::Module& model) {
  for (const nn::NamedTensor& p : model.named_parameters()) {
    print_output("{:50s} {:5s} {}\n", escaped(p.name), name_of(p.tensor.dtype()), p.tensor.shape().to_string());
  }
}

void print_keys(const weights::Checkpoint& checkpoint) {
  for (const weights::TensorInfo& info : checkpoint.tensors()) {
    const std::string dtype = info.unsupported_dtype.empty() ? name_of(info.dtype) : info.unsupported_dtype;
    print_output("{:50s} {:5s} {}\n", escaped(info.name), escaped(dtype), info.shape.to_string());
  }
}

}  // namespace vitrail::app
