#pragma once
// A list through its objects' own `next` and `previous`: joining and leaving allocate nothing. An object is in one list
// at a time, which does not own it. Not thread-safe.

namespace echelon {

template <typename T>
class IntrusiveList {
 public:
  bool empty() const { return first_ == nullptr; }
  T* front() const { return first_; }
  void push_back(T& object) {
    object.next = nullptr;
    object.previous = last_;
    (last_ ? last_->next : first_) = &object;
    last_ = &object;
  }
  void push_front(T& object) {
    object.previous = nullptr;
    object.next = first_;
    (first_ ? first_->previous : last_) = &object;
    first_ = &object;
  }
  void remove(T& object) {
    (object.previous ? object.previous->next : first_) = object.next;
    (object.next ? object.next->previous : last_) = object.previous;
    object.next = object.previous = nullptr;
  }
  T* pop_front() {  // null if it is empty
    T* const object = first_;
    if (object) remove(*object);
    return object;
  }

 private:
  T *first_ = nullptr, *last_ = nullptr;
};

}  // namespace echelon
