#pragma once
// The fingerprint of weights: SHA-256 over every tensor in the order of names: length of the name (eight bytes, little-
// endian, as all numbers here), name, dtype ("f32"), rank, extents, bytes. It depends neither on the order in which the
// tensors are given nor on the file around them, so two runs agree in it exactly if they agree in every bit of every
// weight. This is the one definition: `train --json`, manifests and `echelon runs` all show this number.

#include <span>
#include <string>

#include "tensor/view.h"
#include "track/safetensors.h"

namespace echelon {

std::string weights_hash(std::span<const TensorView> tensors);
std::string weights_hash(SafetensorsFile& file);

}  // namespace echelon
