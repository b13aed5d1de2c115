"""Stop and go on later: the resumed run has the same bits as one that was never stopped."""

import shapely

import tropel


def build():
    world = tropel.World(shapely.box(0, 0, 20, 10), exits={"east": shapely.box(19, 4, 20, 6)})
    return tropel.Simulation(world, tropel.Group("people", count=50, region=shapely.box(1, 1, 12, 9)), seed=3)


whole = build()
whole.run(until=10.0)

first = build()
first.run(until=4.0, checkpoint="half.npz")
second = build()
second.restore("half.npz")
second.run(until=10.0)
assert second.state_hash() == whole.state_hash()
print("the same to the last bit:", second.state_hash()[:16])
