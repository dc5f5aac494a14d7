package router

// names numbers different names in the order in which they come. Few are
// compared one by one, many are hashed, so that a sender cannot make it slow.
type names struct {
	list [][]byte
	seen map[string]int // filled when list has grown beyond fewNames
}

const fewNames = 16

// add returns the number of name and whether it was known already. The name's
// bytes must not change until reset.
func (n *names) add(name []byte) (number int, known bool) {
	if len(n.list) <= fewNames {
		for i := range n.list {
			if string(n.list[i]) == string(name) {
				return i, true
			}
		}
	} else if i, ok := n.seen[view(name)]; ok {
		return i, true
	}
	n.list = append(n.list, name)
	switch i := len(n.list) - 1; {
	case i == fewNames:
		if n.seen == nil {
			n.seen = make(map[string]int)
		}
		for i, name := range n.list {
			n.seen[view(name)] = i
		}
	case i > fewNames:
		n.seen[view(name)] = i
	}
	return len(n.list) - 1, false
}

func (n *names) reset() {
	clear(n.list)
	clear(n.seen)
	n.list = n.list[:0]
}
