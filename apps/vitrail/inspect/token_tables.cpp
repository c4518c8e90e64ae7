// SPDX-License-Identifier: Apache-2.0
// inspect --table norms and lens: what the tokens behind each block are.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/vitrail/inspect/table_functions.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/analysis/artefact_tokens.h"
#include "vitrail/analysis/token_statistics.h"
#include "vitrail/models/logit_lens.h"

namespace vitrail::app {
namespace {

std::vector<int64_t> all_blocks(const models::VisionTransformer& model) {
  std::vector<int64_t> blocks(static_cast<size_t>(model.config().depth));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

double median_norm(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> softmax_of(const Tensor& logits) {
  const float* const values = logits.data<float>();
  const double highest = *std::max_element(values, values + logits.numel());
  std::vector<double> probabilities;
  double sum = 0;
  for (int64_t i = 0; i < logits.numel(); ++i) sum += probabilities.emplace_back(std::exp(values[i] - highest));
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace

void print_norms(const TableInput& input) {
  const auto prefix = input.model.num_prefix_tokens();
  const std::vector<Tensor> blocks = input.model.intermediates(input.image, all_blocks(input.model), false);
  print_output("{:>5s} {:>10s} {:>10s} {:>10s} {:>6s} {:>9s} {:>9s}  special\n", "block", "min", "median", "max",
               "patch", "artefacts", "above");
  for (size_t block = 0; block < blocks.size(); ++block) {
    const std::vector<double> norms = analysis::token_norms(blocks[block].select(0, 0));
    const std::vector<double> patches(norms.begin() + prefix, norms.end());
    const auto [smallest, largest] = std::ranges::minmax_element(patches);
    print_output("{:5d} {:10.3f} {:10.3f} {:10.3f} {:6d} ", block, *smallest, median_norm(patches), *largest,
                 largest - patches.begin());
    const auto artefacts = analysis::artefact_tokens(patches);
    artefacts ? print_output("{:8.2f}% {:9.3f} ", 100 * artefacts->share, artefacts->threshold)
              : print_output("{:>9s} {:>9s} ", "-", "-");
    for (int64_t token = 0; token < prefix; ++token) print_output(" {:.3f}", norms[static_cast<size_t>(token)]);
    print_output("\n");
  }
}

void print_lens(const TableInput& input) {
  constexpr size_t kBest = 3;
  const std::vector<Tensor> blocks = models::logit_lens(input.model, input.image);
  const Tensor logits = blocks.back().contiguous();
  const TableClass of_class(input, logits);
  of_class.print(logits);
  print_output("{:>5s} {:>11s} {:>5s}  best\n", "block", "probability", "rank");
  for (size_t block = 0; block < blocks.size(); ++block) {
    const std::vector<double> probabilities = softmax_of(blocks[block].contiguous());
    std::vector<int64_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](int64_t i) { return probabilities[static_cast<size_t>(i)]; });
    const auto rank = std::ranges::find(order, of_class.index) - order.begin() + 1;
    print_output("{:5d} {:11.4f} {:5d} ", block, probabilities[static_cast<size_t>(of_class.index)], rank);
    for (size_t i = 0; i < std::min(kBest, order.size()); ++i)
      print_output("{} {:.4f} {}", i == 0 ? "" : ";", probabilities[static_cast<size_t>(order[i])],
                   of_class.name_of(order[i]));
    print_output("\n");
  }
}

}  // namespace vitrail::app
