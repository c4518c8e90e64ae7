// SPDX-License-Identifier: Apache-2.0
// inspect --table heads and ablation: what each attention head does.
#include <optional>

#include "apps/vitrail/inspect/table_functions.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "vitrail/analysis/token_statistics.h"
#include "vitrail/models/head_ablation.h"

namespace vitrail::app {

void print_heads(const TableInput& input) {
  const models::VisionTransformer& model = input.model;
  const analysis::PatchGrid patches{model.grid_of(input.image.size(2), input.image.size(3)), model.config().patch_size};
  const std::vector<Tensor> maps = model.attention_maps(input.image);
  print_output("{:>5s} {:>5s} {:>8s} {:>9s} {:>8s}\n", "block", "head", "entropy", "distance", "special");
  for (size_t block = 0; block < maps.size(); ++block) {
    const auto heads = analysis::head_statistics(maps[block].select(0, 0), model.num_prefix_tokens(), patches);
    for (size_t head = 0; head < heads.size(); ++head)
      print_output("{:5d} {:5d} {:8.4f} {:9.2f} {:8.4f}\n", block, head, heads[head].entropy, heads[head].distance,
                   heads[head].special);
  }
}

void print_ablation(const TableInput& input) {
  const Tensor logits = input.model.forward(input.image);
  const TableClass of_class(input, logits);
  std::optional<Progress> progress;
  const Tensor changes = models::head_ablation(input.model, input.image, [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace("blocks", static_cast<size_t>(total), input.quiet);
    if (done > 0) progress->step();
  });
  of_class.print(logits);
  print_output("{:>5s} {:>5s} {:>9s}\n", "block", "head", "change");
  for (int64_t block = 0; block < changes.size(0); ++block) {
    for (int64_t head = 0; head < changes.size(1); ++head) {
      const Tensor change = changes.select(0, block).select(0, head).contiguous();  // [1, classes]
      print_output("{:5d} {:5d} {:9.4f}\n", block, head, change.data<float>()[of_class.index]);
    }
  }
}

}  // namespace vitrail::app
