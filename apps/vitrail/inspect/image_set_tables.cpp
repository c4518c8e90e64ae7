// SPDX-License-Identifier: Apache-2.0
// inspect --table cka and neurons: what is found over many images.
#include <numeric>

#include "apps/vitrail/inspect/table_functions.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "vitrail/analysis/cka.h"
#include "vitrail/analysis/top_activations.h"
#include "vitrail/base/error.h"
#include "vitrail/base/fields.h"
#include "vitrail/models/hidden_activations.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::app {
namespace {

// Few images give a noisy estimate (Nguyen et al. 2021 use hundreds); a batch has the tokens of all blocks in memory.
constexpr size_t kImagesOfCka = 16;

struct Neuron {
  int64_t block = 0, index = 0;
};

Neuron parse_neuron(const std::string& text, const models::VisionTransformerConfig& config) {
  const size_t point = text.find('.');
  if (point == text.npos) throw Error("--neuron", "BLOCK.INDEX, such as 3.17", "'" + text + "'");
  return {parse_integer("--neuron", text.substr(0, point), {0, config.depth - 1}),
          parse_integer("--neuron", text.substr(point + 1), {0, INT64_MAX})};
}

Tensor read_batch(const TableInput& input, ImageInputs& inputs, size_t first, size_t last) {
  std::vector<Tensor> images;
  for (size_t i = first; i < last; ++i) images.push_back(input.read(inputs, i));
  return ops::cat(images, 0);
}

// The images are known when all folders are listed.
size_t number_of_images(ImageInputs& inputs) {
  size_t count = 0;
  while (inputs.at(count)) ++count;
  return count;
}

}  // namespace

void print_cka(const TableInput& input) {
  ImageInputs inputs(input.options.images);
  const size_t count = number_of_images(inputs), batches = count / kImagesOfCka;
  if (batches == 0) throw Error("--images", str("at least ", kImagesOfCka, " images, for CKA"), str(count));
  std::vector<int64_t> blocks(static_cast<size_t>(input.model.config().depth));
  std::iota(blocks.begin(), blocks.end(), 0);
  analysis::LinearCka cka;
  Progress progress("images", count, input.quiet);
  for (size_t batch = 0; batch < batches; ++batch) {
    const size_t first = batch * count / batches, last = (batch + 1) * count / batches;
    cka.add(input.model.intermediates(read_batch(input, inputs, first, last), blocks, false));
    progress.step(static_cast<int64_t>(last - first));
  }
  const Tensor similarities = cka.similarities();
  print_output("{:>5s}", "block");
  for (const int64_t block : blocks) print_output(" {:6d}", block);
  for (const int64_t row : blocks) {
    print_output("\n{:5d}", row);
    for (const int64_t column : blocks)
      print_output(" {:6.3f}", similarities.data<float>()[row * std::ssize(blocks) + column]);
  }
  print_output("\n");
}

void print_neurons(const TableInput& input) {
  constexpr size_t kPatches = 9;
  const Neuron neuron = parse_neuron(input.options.neuron, input.model.config());
  const int64_t prefix = input.model.num_prefix_tokens();
  ImageInputs inputs(input.options.images);
  analysis::TopActivations top(kPatches);
  int64_t columns = 1;
  const size_t count = number_of_images(inputs);
  Progress progress("images", count, input.quiet);
  for (size_t i = 0; i < count; ++i) {
    const Tensor image = input.read(inputs, i);
    const Tensor hidden = models::hidden_activations(input.model, image, neuron.block).select(0, 0);  // [N, hidden]
    if (neuron.index >= hidden.size(1))
      throw Error("--neuron", str("an index from 0 to ", hidden.size(1) - 1, " in a block"), str(neuron.index));
    columns = input.model.grid_of(image.size(2), image.size(3))[1];
    top.add(static_cast<int64_t>(i), hidden.narrow(0, prefix, hidden.size(0) - prefix).select(1, neuron.index));
    progress.step();
  }
  print_output("{:>10s} {:>4s} {:>6s}  image\n", "activation", "row", "column");
  for (const auto& [image, patch, value] : top.largest_first())
    print_output("{:10.4f} {:4d} {:6d}  {}\n", value, patch / columns, patch % columns,
                 escaped(inputs.at(static_cast<size_t>(image))->path));
}

}  // namespace vitrail::app
