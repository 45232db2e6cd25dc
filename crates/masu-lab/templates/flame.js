// Shows a box of a flame graph, what stands on it and what it stands on, and nothing else.
const boxes = [...document.querySelectorAll('rect.flame')].map(r => {
  let t = r.nextElementSibling;
  if (t?.tagName !== 'text') {
    r.after(t = document.createElementNS(r.namespaceURI, 'text'));
    t.setAttribute('class', 'label'); t.setAttribute('y', +r.getAttribute('y') + 12.5);
  }
  return { r, t, x: +r.getAttribute('x'), w: +r.getAttribute('width'), y: +r.getAttribute('y'),
           said: r.querySelector('title').textContent };
});
function look(at) {
  const zoom = 1184 / at.w;
  for (const b of boxes) {
    const under = b.y > at.y && b.x <= at.x + 0.1 && b.x + b.w >= at.x + at.w - 0.1;
    const above = b.y <= at.y && b.x >= at.x - 0.1 && b.x + b.w <= at.x + at.w + 0.1;
    b.r.style.display = b.t.style.display = under || above ? '' : 'none';
    const x = under ? 8 : 8 + (b.x - at.x) * zoom, w = under ? 1184 : b.w * zoom;
    b.r.setAttribute('x', x); b.r.setAttribute('width', w); b.t.setAttribute('x', x + 3);
    const letters = Math.floor((w - 6) / 7.3);
    b.t.textContent = letters < 4 ? '' :
      b.said.length <= letters ? b.said : b.said.slice(0, letters - 1) + '…';
  }
}
for (const b of boxes) for (const e of [b.r, b.t]) e.addEventListener('click', () => look(b));
