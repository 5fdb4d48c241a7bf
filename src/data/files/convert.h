#pragma once
// Any data set, written in another format. The files are made in a directory beside the target and renamed into place
// at the end, so a target is either whole or not there. BadInput if the format cannot hold the samples, or the target
// exists already.
//
//   idx     TARGET/SPLIT-images-idx3-ubyte and -labels-: grey images of 8 bits ("t10k" for the split test), as MNIST
//   npy     TARGET/SPLIT_x.npy and SPLIT_y.npy: anything, as float32 and int32
//   csv     TARGET/SPLIT.csv: one row a sample, the label in the last column
//   tar     TARGET/SPLIT-000000.tar ...: images as PNG and .cls (WebDataset)
//   images  TARGET/SPLIT/CLASS/*.png

#include "data/files/catalog.h"

namespace echelon::data {

std::vector<std::string> convert_formats();

struct SplitToConvert {
  std::string split;  // "train"
  DatasetPtr dataset;
};

// Writes all splits into the new directory `target`.
void convert_dataset(Disk& disk, const std::vector<SplitToConvert>& splits, const std::string& format,
                     const std::string& target, const Progress& progress = {});

}  // namespace echelon::data
