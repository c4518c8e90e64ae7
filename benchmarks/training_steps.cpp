// SPDX-License-Identifier: Apache-2.0
// training_steps FOLDER STEPS LEARNING_RATE LABEL_SMOOTHING: trains the model in FOLDER with AdamW, for
// benchmarks/same_as_torch.py.
//
// Reads FOLDER/batches.safetensors: images [n, B, C, H, W] f32 and labels [n, B] i64; the steps cycle through the n
// batches.  Writes FOLDER/vitrail.safetensors: losses [steps] f64 and the parameters after the last step.
#include <cstdio>
#include <cstdlib>

#include "vitrail/autograd/engine.h"
#include "vitrail/models/load.h"
#include "vitrail/ops/loss.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/caching_allocator.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace {

using namespace vitrail;

void train(const std::filesystem::path& folder, int steps, double learning_rate, double smoothing) {
  const CachingAllocatorScope memory;
  models::VisionTransformer model = models::build_model(models::open_model(folder));
  model.train();
  const auto optimizer = optim::make_optimizer({}, optim::parameter_groups(model, {}));
  const weights::Checkpoint batches = weights::Checkpoint::open({folder / "batches.safetensors"});
  const Tensor images = batches.tensor("images"), labels = batches.tensor("labels");
  const Tensor losses = Tensor::empty({steps}, DType::f64);
  for (int step = 0; step < steps; ++step) {
    const int64_t batch = step % images.size(0);
    const Tensor loss = ops::cross_entropy(model.forward(images.select(0, batch)), labels.select(0, batch), smoothing);
    losses.data<double>()[step] = loss.item<double>();
    autograd::backward(loss);
    optimizer->step(learning_rate);
    optimizer->clear_gradients();
  }
  std::vector<std::pair<std::string, Tensor>> results{{"losses", losses}};
  for (const nn::NamedTensor& p : model.named_parameters()) results.emplace_back(p.name, p.tensor.detach());
  weights::write_safetensors(folder / "vitrail.safetensors", results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: training_steps FOLDER STEPS LEARNING_RATE LABEL_SMOOTHING\n");
    return 2;
  }
  try {
    train(argv[1], std::atoi(argv[2]), std::atof(argv[3]), std::atof(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_steps: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
