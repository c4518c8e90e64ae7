// SPDX-License-Identifier: Apache-2.0
// training_steps FOLDER: trains the model in FOLDER on the batches in FOLDER/batches.safetensors and writes what
// PyTorch is compared with by benchmarks/same_as_torch.py.
//
// batches: images [n, B, C, H, W] f32, labels [n, B] i64, taken in turn; steps, rate and label smoothing as arguments.
// Writes FOLDER/vitrail.safetensors: losses [steps] and the parameters after the last step.
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

void train(const std::filesystem::path& folder, int steps, double rate, double smoothing) {
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
    optimizer->step(rate);
    optimizer->clear_gradients();
  }
  std::vector<std::pair<std::string, Tensor>> results{{"losses", losses}};
  for (const nn::NamedTensor& p : model.named_parameters()) results.emplace_back(p.name, p.tensor.detach());
  weights::write_safetensors(folder / "vitrail.safetensors", results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: training_steps FOLDER STEPS RATE LABEL_SMOOTHING\n");
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
